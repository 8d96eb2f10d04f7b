"""What a trained language model is used for: scoring with a cache, surprisal, minimal pairs, generation."""
