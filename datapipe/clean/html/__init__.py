"""From the source of web pages to their text.

Owns what is taken out of a page and which pages are too odd to be looked at; knows nothing of
where pages come from or how their bytes became characters.
"""

from datapipe.clean.html.stage import ExtractHtml, ExtractHtmlOptions

__all__ = ["ExtractHtml", "ExtractHtmlOptions"]
