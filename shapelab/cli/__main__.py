from shapelab.cli.app import app

app(prog_name="shapelab")
