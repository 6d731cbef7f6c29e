"""Raw results of a driver: a line of JSON each, which `anabranch lab bench` keeps and makes tables of."""

import json


def row(**values):
    """Tells one, with texts and numbers by name."""
    print(json.dumps(values), flush=True)
