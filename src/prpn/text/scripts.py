"""Scripts that write no spaces between words: those of South-East Asia, Han, and kana."""

import re

UNSPACED = re.compile(
    r"[\u0e00-\u0eff"  # Thai, Lao
    r"\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    r"\u1780-\u17ff\u1950-\u19ff\u1a20-\u1aaf"  # Khmer, Tai
    r"\u3001-\u30ff\u31f0-\u31ff\uff01-\uff0f\uff1a-\uff1f\uff61-\uff9f"  # kana, and punctuation that goes with it
    r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"  # Han
)
"""One character of such a script."""
