"""Turns a source into a table, with the columns that a person named for the same header before."""

import asyncio
from dataclasses import replace
from pathlib import Path

from clef.errors import Problem
from clef.runs.store import Store
from clef.tables import ReadOptions, Table, read


async def read_as_before(store: Store, source: bytes | Path, options: ReadOptions) -> Table:
    """The table, read in a thread. Where neither columns nor questions are named, the columns that were named for this
    header before are, and the table says so.
    """
    table = await asyncio.to_thread(read, source, options)
    if options.mapping or options.questions or not table.facts.columns:
        return table
    mapping = await store.remembered(table.facts.columns)
    if not mapping:
        return table
    table = await asyncio.to_thread(read, source, replace(options, mapping=mapping))
    named = ", ".join(f'{role} = "{header}"' for role, header in mapping.items())
    hint = "name the columns again to change it"
    told = Problem(f"read as you said for this header before: {named}", "remembered", hint=hint)
    return replace(table, warnings=(told, *table.warnings))
