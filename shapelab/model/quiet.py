"""Loading without noise."""

import contextlib


@contextlib.contextmanager
def quiet_transformers():
    """No progress bars and no advice from transformers inside the block; its settings are put back after."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
