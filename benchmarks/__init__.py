"""Speed beside the peers: `python -m benchmarks` runs all, `python -m benchmarks NAME` one of them."""
