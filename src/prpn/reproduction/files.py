"""The files an experiment needs, found by name in the user's folder, and whether they are those of the recorded run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from prpn.errors import ConfigError, InputError
from prpn.provenance import checksum
from prpn.reproduction.experiments import Experiment, FileNeeded, Role
from prpn.training.data import embedded_corpus

COMPRESSED = ("", ".gz", ".xz", ".bz2", ".zst")


@dataclass(frozen=True)
class FoundFile:
    """What a role is played by: a file, or several one after the other."""

    needed: FileNeeded
    paths: tuple[Path, ...]
    sha256: str | None
    as_recorded: bool | None
    """Whether the content is that of the recorded run; None where nothing is recorded."""

    @property
    def verdict(self) -> str:
        """`as_recorded` in words."""
        verdicts = {True: "as recorded", False: "other content than recorded", None: "nothing recorded to compare with"}
        return verdicts[self.as_recorded]


def find_files(
    experiment: Experiment, folder: Path | None, recorded_checksums: Mapping[str, str]
) -> dict[Role, FoundFile]:
    """Every file of an experiment by its role; an error that names all that are missing."""
    found: dict[Role, FoundFile] = {}
    missing = []
    for role, needed in experiment.files.items():
        parts = (needed, *needed.then)
        found_parts = [_paths_of(experiment, part, folder) for part in parts]
        if all(found_parts):
            paths = tuple(path for part in found_parts for path in part)
            sha256, recorded = checksum(paths), recorded_checksums.get(role)
            found[role] = FoundFile(needed, paths, sha256, None if recorded is None else sha256 == recorded)
        else:
            missing += [part for part, paths in zip(parts, found_parts, strict=True) if not paths]
    if missing:
        names = ", ".join(f"{needed.names[0]} ({needed.what})" for needed in missing)
        sources = dict.fromkeys(needed.source for needed in missing)
        raise InputError(str(folder), f"neither in this folder nor below it: {names}", "; ".join(sources))
    return found


def _paths_of(experiment: Experiment, needed: FileNeeded, folder: Path | None) -> tuple[Path, ...]:
    if needed.embedded:
        return (embedded_corpus(*needed.embedded.split(".")),)
    if folder is None:
        parts = [part for file in experiment.files.values() for part in (file, *file.then)]
        wanted = ", ".join(dict.fromkeys(part.names[0] for part in parts if part.names))
        raise ConfigError(f"{experiment.name} needs files that do not come with prpn ({wanted}): give --data FOLDER")
    if not folder.is_dir():
        raise InputError(str(folder), "no such folder", "give --data the folder that holds the files")
    for name in needed.names:
        for ending in COMPRESSED:
            if paths := _named(folder, name + ending):
                return paths
    return ()


def _named(folder: Path, pattern: str) -> tuple[Path, ...]:
    """Files of this name or pattern, in order of their names; of two with the same name the one less deep."""
    by_name: dict[str, Path] = {}
    for path in sorted(folder.rglob(pattern), key=lambda path: (len(path.parts), path)):
        if path.is_file():
            by_name.setdefault(path.name, path)
    return tuple(by_name[name] for name in sorted(by_name))
