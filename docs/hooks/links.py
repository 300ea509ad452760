"""Links of pages to files that are in the repository but not on the site: they become the file's path as code."""

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    pages = Path(config["docs_dir"]).resolve()
    here = (pages / page.file.src_uri).parent

    def shown(link: re.Match[str]) -> str:
        text, target, _ = link.groups()
        file = (here / target).resolve()
        if file.is_relative_to(pages):
            return link[0]
        root = pages.parent
        if not file.is_relative_to(root) or not file.exists():
            return link[0]  # of which MkDocs warns
        path = file.relative_to(root).as_posix()
        return f"`{path}`" if text in (path, file.name) else f"{text} (`{path}`)"

    return LINK.sub(shown, markdown)
