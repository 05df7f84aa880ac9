"""What a turn costs, here and elsewhere, side by side in one run: `python -m benchmarks`."""
