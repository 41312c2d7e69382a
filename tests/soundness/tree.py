"""Nodes of generated programs: each has its text and a function that does to an environment what the text does."""


class Node:
    def __init__(self, text, run):
        self.text, self.run = text, run


def block(nodes):
    nodes = list(nodes)
    return Node("\n".join(node.text for node in nodes if node.text), lambda env: [node.run(env) for node in nodes])


def indent(text):
    return "\n".join("    " + line if line else line for line in text.split("\n"))


def braces(head, text):
    return f"{head} {{\n{indent(text)}\n}}" if head else f"{{\n{indent(text)}\n}}"
