"""From text to arrays: files → tokens → vocabulary → corpus of ids → batches."""
