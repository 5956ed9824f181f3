"""A headless Chromium for tests, driven over the DevTools protocol.

Everything that must not happen is written down as it happens: scripts that fail, violations of the page's content
policy, dialogs, and requests to anybody but the server that is tested.
"""

import asyncio
import base64
import contextlib
import json
import shutil
import struct
import subprocess
import threading
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ),
    *("--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--force-device-scale-factor=1", "--remote-debugging-port=0"),
)
WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation",
    (event) => window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
DEADLINE_S = 60


class Browser:
    """One page. Methods wait for the answer; they may be called from any thread but the browser's own."""

    def __init__(self, socket, loop) -> None:
        self._socket, self._loop = socket, loop
        self._number = 0
        self._waiting: dict[int, asyncio.Future] = {}
        self.failures: list[str] = []  # of scripts
        self.requests: list[str] = []
        self.dialogs: list[str] = []

    def call(self, method: str, **params):
        """Send a command and return its result."""
        return asyncio.run_coroutine_threadsafe(self._call(method, params), self._loop).result(DEADLINE_S)

    async def _call(self, method, params):
        self._number += 1
        number, answered = self._number, self._loop.create_future()
        self._waiting[number] = answered
        await self._socket.send_json({"id": number, "method": method, "params": params})
        return await answered

    async def listen(self) -> None:
        async for message in self._socket:
            told = json.loads(message.data)
            if "id" in told:
                waiting = self._waiting.pop(told["id"])
                if not waiting.done():
                    if "error" in told:
                        waiting.set_exception(RuntimeError(str(told["error"])))
                    else:
                        waiting.set_result(told["result"])
            else:
                self._note(told["method"], told["params"])

    def _note(self, method, params) -> None:
        if method == "Runtime.exceptionThrown":
            self.failures.append(json.dumps(params["exceptionDetails"])[:500])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.javascriptDialogOpening":
            self.dialogs.append(params["message"])
            self._loop.create_task(self._call("Page.handleJavaScriptDialog", {"accept": False}))

    # What a person does

    def open(self, url: str) -> None:
        """Go to an address."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=url)

    def run(self, script: str):
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(json.dumps(result["exceptionDetails"])[:1000])
        return result["result"].get("value")

    def until(self, condition: str):
        """Wait until an expression is true, and return its value."""
        script = f"""new Promise((done, failed) => {{
            const until = Date.now() + {1000 * (DEADLINE_S - 10)};
            const look = () => {{
                let found = null;
                try {{ found = {condition}; }} catch (error) {{ if (Date.now() > until) return failed(error); }}
                if (found) done(found);
                else if (Date.now() > until)
                    failed(new Error("never true; the page says: " + document.body.innerText.slice(0, 800)));
                else setTimeout(look, 20);
            }};
            look();
        }})"""
        return self.run(script)

    def text(self, selector: str) -> str:
        """Return what an element says."""
        return self.until(f"document.querySelector({json.dumps(selector)})?.textContent")

    def press(self, key: str, *, modifiers: int = 0) -> None:
        """Press a key and let it go."""
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowRight": 39, "ArrowUp": 38, "ArrowDown": 40}
        code = {"windowsVirtualKeyCode": codes[key]} if key in codes else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, modifiers=modifiers, **text, **code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers, **code)

    def mouse(self, kind: str, x: float, y: float) -> None:
        """Move the mouse, press or release its button."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", buttons=1, clickCount=1)

    def box(self, selector: str) -> dict[str, float]:
        """Return where an element is: x, y, width, height."""
        script = (
            "(({x, y, width, height}) => ({x, y, width, height}))(document.querySelector(%s).getBoundingClientRect())"
        )
        return self.run(script % json.dumps(selector))

    def boxes(self, selector: str) -> list[dict[str, float]]:
        """Return where all elements of a kind are."""
        script = (
            "[...document.querySelectorAll(%s)].map((e) => e.getBoundingClientRect())"
            ".map(({x, y, width, height}) => ({x, y, width, height}))"
        )
        return self.run(script % json.dumps(selector))

    def prefer(self, scheme: str) -> None:
        """Wish for light or dark."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def picture(self, file: Path) -> np.ndarray:
        """Keep a picture of what is seen, and return its pixels: rows, columns, red, green and blue."""
        # Two frames, since what was changed last may not have been drawn yet.
        self.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        content = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        return pixels(content)


@contextlib.contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium with an empty profile below a directory, and end it."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "expected chromium on PATH; tools/system_programs.sh installs it"
    command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        loop = asyncio.new_event_loop()
        thread = threading.Thread(target=loop.run_forever)
        thread.start()
        try:
            address = next(line.split()[-1] for line in process.stderr if "DevTools listening on" in line)
            drain = threading.Thread(target=process.stderr.read)  # what it says later must not fill the pipe
            drain.start()
            session, page, listening = asyncio.run_coroutine_threadsafe(_connect(address, loop), loop).result(
                DEADLINE_S
            )
            for domain in ("Page", "Runtime", "Network", "Log"):
                page.call(f"{domain}.enable")
            page.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
            size = {"width": 1360, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            page.call("Emulation.setDeviceMetricsOverride", **size)
            yield page
            asyncio.run_coroutine_threadsafe(_close(session, listening), loop).result(DEADLINE_S)
        finally:
            process.terminate()
            process.wait(DEADLINE_S)
            drain.join()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            loop.close()


async def _connect(address, loop):
    import aiohttp

    session = aiohttp.ClientSession()
    base = address.replace("ws://", "http://").partition("/devtools")[0]
    while True:
        async with session.get(f"{base}/json") as answer:
            pages = [one for one in await answer.json() if one["type"] == "page"]
        if pages:
            break
    socket = await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0)
    page = Browser(socket, loop)
    return session, page, loop.create_task(page.listen())


async def _close(session, listening):
    await session.close()
    with contextlib.suppress(asyncio.CancelledError):
        await listening


def pixels(png: bytes) -> np.ndarray:
    """Return the pixels of a PNG of 8 bits a channel, as Chromium writes them."""
    data, place, kind = b"", 8, 0
    width = height = 0
    while place < len(png):
        length, name = struct.unpack(">I4s", png[place : place + 8])
        body = png[place + 8 : place + 8 + length]
        if name == b"IHDR":
            width, height, _, kind = struct.unpack(">IIBB", body[:10])
        elif name == b"IDAT":
            data += body
        place += 12 + length
    channels = {2: 3, 6: 4}[kind]
    raw = np.frombuffer(zlib.decompress(data), np.uint8).reshape(height, 1 + width * channels)
    lines = np.zeros((height, width * channels), np.uint8)
    above = np.zeros(width * channels, np.uint8)
    for row in range(height):
        above = lines[row] = _unfiltered(raw[row, 0], raw[row, 1:], above, channels)
    return lines.reshape(height, width, channels)[:, :, :3]


def _unfiltered(kind, line, above, step):
    if kind == 0:
        return line
    if kind == 2:
        return line + above
    if kind == 1:
        return np.add.accumulate(line.reshape(-1, step), axis=0, dtype=np.uint8).reshape(-1)
    left, found = [0] * step, [0] * len(line)
    corner = [0] * step
    for i, value in enumerate(line.tolist()):
        a, b, c = left[i % step], int(above[i]), corner[i % step]
        if kind == 3:
            guess = (a + b) // 2
        else:
            p = a + b - c
            guess = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
        found[i] = left[i % step] = (value + guess) & 255
        corner[i % step] = b
    return np.array(found, np.uint8)
