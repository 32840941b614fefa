"""What several pages share: parts of pages, the selection, links, words and units."""
