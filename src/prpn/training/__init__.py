"""From text and a recipe to weights: data, schedule, loop, checkpoints, evaluation and the record of a run."""
