"""The viewer: a run's tree, nodes and files in a browser, or in one page of HTML."""
