"""Before anything else: waiting threads sleep (cores are shared), and hypothesis draws the same examples each time."""

import os

os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read once, when torch is first imported

from hypothesis import HealthCheck, settings

settings.register_profile(
    "prpn",
    deadline=None,
    derandomize=True,
    database=None,
    max_examples=50,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("prpn")
