"""Root conftest: only what pytest allows nowhere else."""

pytest_plugins = ["pytester"]
