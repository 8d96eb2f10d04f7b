"""What a model must be better than: simple language models to stand beside its numbers."""
