"""`mooring replay JOURNAL`: what a live scheduler was told, told to an engine again."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path

import click

from mooring.cli import output
from mooring.cli.inputs import check_installed

#: How the first line of a journal begins.
_MARK = b'{"mooringJournal":'


def is_journal_file(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_MARK)) == _MARK


def replay_live(path: Path, form: str) -> None:
    """Exits 0 if everything is decided as in the journal, 1 if not."""
    check_installed("live")
    from mooring.live.journal_replay import replay_journal

    replayed = replay_journal(path)
    if form == "json":
        output.write_json({**asdict(replayed), "same": replayed.same})
    else:
        click.echo(f"{replayed.inputs} inputs, {replayed.decisions} decisions as in the journal")
        if replayed.difference:
            click.echo(f"the replay differs: {replayed.difference}")
        if replayed.recorded_error:
            click.echo(f"the journal ends with: {replayed.recorded_error}")
        if replayed.error:
            click.echo(f"the replay ends with: {replayed.error}")
    sys.exit(0 if replayed.same else 1)
