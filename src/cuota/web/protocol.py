"""The HTTP protocol of a connection, with a bound that uvicorn lacks: the head of a request has a largest size."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MOST_HEAD_BYTES = 32 * 1024
_TOO_LARGE = (
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-type: text/plain\r\ncontent-length: 49\r\n"
    b"connection: close\r\n\r\nThe head of a request may have 32768 bytes only.\n"
)


class BoundedProtocol(HttpToolsProtocol):
    """Refuses a head of more than 32 KiB before it is gathered, and so before anybody is authenticated."""

    _in_head = True
    _head_bytes = 0

    def on_message_begin(self) -> None:
        """A request begins: its head counts from here."""
        self._in_head, self._head_bytes = True, 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """The head is over; bodies have their own limit (`web/body`)."""
        self._in_head = False
        super().on_headers_complete()

    def data_received(self, data: bytes) -> None:
        """Feed the parser no more of a head than it may have."""
        while self._in_head and data:
            room = MOST_HEAD_BYTES - self._head_bytes
            if room <= 0:
                self.transport.write(_TOO_LARGE)
                self.transport.close()
                return
            part, data = data[:room], data[room:]
            self._head_bytes += len(part)
            super().data_received(part)
            if self.transport.is_closing():
                return
        if data:
            super().data_received(data)
