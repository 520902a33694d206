from memci.attp.document import CodeCall, Reply, parse
from memci.attp.tool import Tool
from memci.attp.toolbox import Toolbox

__all__ = ["CodeCall", "Reply", "Tool", "Toolbox", "parse"]
