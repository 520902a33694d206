"""What directories of the contents page show, for tests."""

from memci.archive.contents.contents_page import Directory


def row_of(directory: Directory, number: int) -> str:
    """Return the row that a directory shows of a page; empty where it shows none."""
    return next((line for line in directory.render().split("\n")[1:] if line.split(" ")[0] == str(number)), "")
