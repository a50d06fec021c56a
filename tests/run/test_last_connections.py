"""A worker that stops first accepts the connections that wait in its listening socket."""

from __future__ import annotations

import socket

from cuota.run.last_connections import accept_waiting


def test_no_waiting_connection_is_reset_when_the_listening_socket_is_closed() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)
    clients = [socket.create_connection(listener.getsockname()) for _ in range(5)]
    for client in clients:
        client.sendall(b"a request")
    accepted = accept_waiting(listener)
    assert len(accepted) == 5
    assert listener.fileno() == -1
    for connection in accepted:
        connection.setblocking(True)
        assert connection.recv(100) == b"a request"
        connection.sendall(b"an answer")
        connection.close()
    for client in clients:
        assert client.recv(100) == b"an answer"
        client.close()


def test_without_a_waiting_connection_the_listening_socket_is_closed_too() -> None:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    assert accept_waiting(listener) == []
    assert listener.fileno() == -1
