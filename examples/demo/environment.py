"""The environment of all processes: local credentials, and nothing of the user's."""

import os

AWS = {
    "AWS_ACCESS_KEY_ID": "demo",
    "AWS_SECRET_ACCESS_KEY": "demo",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
}
"""What all processes of the demo run with, instead of anything of the user's."""


def isolate() -> None:
    """Keep the user's AWS and kcl settings away from this process and its children."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "KCL_")):
            del os.environ[name]
    os.environ.update(AWS)
