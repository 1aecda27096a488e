"""From a specification and data to a trained run on disk: the spec, the one loop, checkpoints, runs."""
