"""How fast and how large: this package beside the step-by-step formulation and torch.nn.LSTM. `python -m benchmarks`.

Contenders take turns in one process, so that a noisy machine troubles all of them alike; what counts is the ratio of
their median times. Measure on a quiet machine: threads of PyTorch that wait for each other spin, and where other work
wants the cores they lose much (`OMP_WAIT_POLICY=passive` makes them sleep, which slows many small operations down).
"""
