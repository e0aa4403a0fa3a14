"""No test may reach a hub: what a machine without one sees is what is tested."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
