"""Turns rows into the bytes of a small XLSX or ODS file, so that tests need no spreadsheet program."""

import io
import zipfile
from collections.abc import Sequence
from xml.sax.saxutils import escape

Cell = str | float | bool | None
Rows = Sequence[Sequence[Cell]]

_TYPES = (
    '<?xml version="1.0" encoding="UTF-8"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
    '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    '<Override PartName="/xl/workbook.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>{}</Types>'
)
_SHEET_TYPE = (
    '<Override PartName="/xl/worksheets/sheet{}.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>'
)
_PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
_RELS = '<?xml version="1.0" encoding="UTF-8"?><Relationships xmlns="' + _PACKAGE + '">{}</Relationships>'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_R = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_RELATION = '<Relationship Id="rId{}" Type="' + _R + '/{}" Target="{}"/>'


def xlsx(sheets: dict[str, Rows]) -> bytes:
    """A workbook with these sheets; None leaves a cell out."""
    out = io.BytesIO()
    numbers = range(1, len(sheets) + 1)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("[Content_Types].xml", _TYPES.format("".join(_SHEET_TYPE.format(n) for n in numbers)))
        book.writestr("_rels/.rels", _RELS.format(_RELATION.format(1, "officeDocument", "xl/workbook.xml")))
        relations = "".join(_RELATION.format(n, "worksheet", f"worksheets/sheet{n}.xml") for n in numbers)
        book.writestr("xl/_rels/workbook.xml.rels", _RELS.format(relations))
        listed = "".join(
            f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1)
        )
        book.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{_MAIN}" xmlns:r="{_R}"><sheets>{listed}</sheets></workbook>'
        )
        for n, rows in enumerate(sheets.values(), 1):
            body = "".join(f'<row r="{at}">{_xlsx_row(row, at)}</row>' for at, row in enumerate(rows, 1))
            book.writestr(
                f"xl/worksheets/sheet{n}.xml", f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData></worksheet>'
            )
    return out.getvalue()


def _xlsx_row(row: Sequence[Cell], at: int) -> str:
    cells = []
    for column, value in enumerate(row):
        place = f'r="{chr(ord("A") + column)}{at}"'
        if value is None:
            continue
        if isinstance(value, bool):
            cells.append(f'<c {place} t="b"><v>{int(value)}</v></c>')
        elif isinstance(value, int | float):
            cells.append(f"<c {place}><v>{value!r}</v></c>")
        elif value.startswith("#") and value.isupper():
            cells.append(f'<c {place} t="e"><v>{value}</v></c>')
        else:
            cells.append(f'<c {place} t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>')
    return "".join(cells)


def ods(rows: Rows) -> bytes:
    """An OpenDocument spreadsheet with one sheet."""
    out = io.BytesIO()
    body = "".join(
        "<table:table-row>" + "".join(_ods_cell(cell) for cell in row) + "</table:table-row>" for row in rows
    )
    spaces = " ".join(
        f'xmlns:{short}="urn:oasis:names:tc:opendocument:xmlns:{short}:1.0"' for short in ("office", "table", "text")
    )
    content = (
        f'<?xml version="1.0" encoding="UTF-8"?><office:document-content {spaces}><office:body><office:spreadsheet>'
        f'<table:table table:name="Sheet1">{body}</table:table>'
        "</office:spreadsheet></office:body></office:document-content>"
    )
    with zipfile.ZipFile(out, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", "<manifest/>")
        book.writestr("content.xml", content)
    return out.getvalue()


def _ods_cell(value: Cell) -> str:
    if value is None:
        return "<table:table-cell/>"
    if isinstance(value, bool):
        return f'<table:table-cell office:value-type="boolean" office:boolean-value="{str(value).lower()}"/>'
    if isinstance(value, int | float):
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'
    paragraphs = "".join(f"<text:p>{escape(line)}</text:p>" for line in value.split("\n"))
    return f'<table:table-cell office:value-type="string">{paragraphs}</table:table-cell>'
