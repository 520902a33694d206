if __name__ != "memci.archive":  # by the link at the top of a checkout, its classes would be others than memci's
    message = "this is a part of memci: import memci.archive"
    raise ImportError(message)
