"""Builds the native core: the same C++ sources once for each instruction set, each optional.

Which of them runs is decided when the package is used (`prpn.kernels.native`), by what a small library for any
processor says of the machine. Where no compiler is at hand, or it does not know an instruction set, that library is
left out and everything runs in PyTorch and numpy.
"""

import copy
import os
import platform
from collections.abc import Iterable, Iterator
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/prpn/kernels/native")
MACHINE, MESSAGE = NATIVE / "machine.cpp", NATIVE / "message.cpp"
HEADERS = sorted(str(path) for path in NATIVE.glob("*.h"))
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


def library(name: str, sources: Iterable[Path], flags: list[str]) -> Extension:
    """A library that is left out where it cannot be built."""
    return Extension(
        f"prpn.kernels._native_{name}",
        sources=sorted(map(str, sources)),
        depends=HEADERS,
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=[flag for flag in flags if flag == "-fopenmp"],
        language="c++",
        optional=True,
    )


def libraries() -> Iterator[Extension]:
    """The native core, on the machines that it is written for."""
    if platform.machine() in ("x86_64", "AMD64"):
        yield library("machine", [MACHINE, MESSAGE], [])
        sources = set(NATIVE.glob("*.cpp")) - {MACHINE}
        for name, flags in INSTRUCTION_SETS.items():
            yield library(name, sources, [*flags, "-fopenmp"])


setup(
    cmdclass={"build_ext": BuildSideBySide},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    ext_modules=list(libraries()),
)
