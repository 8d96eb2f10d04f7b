"""The paper's tables, our experiments beside them, what was recorded, and how to run them again.

tables.toml ────── paper ──────┐
experiments.toml ─ experiments ┼─ listing
recorded.json ──── recorded ───┴─ files ── run ── comparison
"""
