"""Timings of bertlib beside the libraries that people use for the same job.

    python -m benchmarks.inference        hidden states of BERT-base
    python -m benchmarks.training         a step of masked-language-model training, and its memory
    python -m benchmarks.tokenization     from text to ids
    python -m benchmarks.import_time      what an import costs

`make bench` runs all four; each writes its section of `benchmarks/results.md`. Before anything is timed the answers are
held equal, and a wrong one stops the run.
"""
