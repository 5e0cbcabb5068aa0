"""Reading a cluster from what people have: files and folders of YAML or JSON."""

from __future__ import annotations

from mooring.objects.decoding import decode_object as decode_object
