"""Builds the native core: the same C++ sources once for each instruction set, each optional.

Which of them runs is decided when the package is used (`prpn.kernels.native`). Where no compiler is at hand, or it does
not know an instruction set, that library is left out and everything runs in PyTorch and numpy.
"""

import copy
import os
import platform
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/prpn/kernels/native")
INSTRUCTION_SETS = {
    "avx2": ["-mavx2", "-mfma"],
    "avx512": ["-mavx2", "-mfma", "-mavx512f", "-mavx512bw", "-mavx512vl", "-mavx512dq", "-mprefer-vector-width=512"],
}
INSTRUCTION_SETS["avx512bf16"] = [*INSTRUCTION_SETS["avx512"], "-mavx512bf16"]
INSTRUCTION_SETS["amx"] = [*INSTRUCTION_SETS["avx512"], "-mamx-tile", "-mamx-bf16"]
FLAGS = ["-std=c++17", "-O3", "-g0", "-Wall", "-Wextra", "-fno-math-errno", "-fno-trapping-math", "-fvisibility=hidden"]


class BuildSideBySide(build_ext):
    """Compiles the libraries at the same time. They share their sources, so each has its own folder of objects."""

    def build_extension(self, ext):
        """Compile and link one library."""
        own = copy.copy(self)
        own.build_temp = str(Path(self.build_temp, ext.name))
        build_ext.build_extension(own, ext)


setup(
    cmdclass={"build_ext": BuildSideBySide},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=[
        Extension(
            f"prpn.kernels._native_{name}",
            sources=sorted(str(path) for path in NATIVE.glob("*.cpp")),
            depends=sorted(str(path) for path in NATIVE.glob("*.h")),
            extra_compile_args=[*FLAGS, *flags, "-fopenmp"],
            extra_link_args=["-fopenmp"],
            language="c++",
            optional=True,
        )
        for name, flags in INSTRUCTION_SETS.items()
        if platform.machine() in ("x86_64", "AMD64")
    ],
)
