"""The steps of a run, and the runner that composes them."""
