"""What the tests of data sets share."""

import functools
import http.server
import threading

import pytest

from psmvae_paper.datasets.home import VARIABLE


@pytest.fixture(autouse=True)
def no_folder(monkeypatch, tmp_path):
    """No data folder is named, and the cache is an empty one."""
    monkeypatch.delenv(VARIABLE, raising=False)
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path / "user"))


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, keeps what was asked for, and breaks off where a name says so."""

    def log_message(self, *arguments):
        self.server.asked.append(self.path)

    def do_GET(self):
        if "broken" not in self.path:
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"1,2\n")


class Web:
    """A server on this machine: files put into `folder` have an address."""

    def __init__(self, folder):
        self.folder = folder
        handler = functools.partial(Handler, directory=str(folder))
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.asked = []
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    @property
    def asked(self):
        return self.server.asked

    def put(self, name, content):
        """Serve a text or bytes, and give the address."""
        data = content if isinstance(content, bytes) else content.encode()
        (self.folder / name).write_bytes(data)
        return self.address(name)

    def address(self, name):
        return f"http://127.0.0.1:{self.server.server_address[1]}/{name}"

    def stop(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture
def web(monkeypatch, tmp_path):
    """A server; it is asked directly, whatever proxy there is."""
    monkeypatch.setenv("no_proxy", "*")
    folder = tmp_path / "web"
    folder.mkdir()
    server = Web(folder)
    yield server
    server.stop()
