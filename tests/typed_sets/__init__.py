"""Sets that tests and benchmarks of typed conversations share: attacks, and labelled conversations."""
