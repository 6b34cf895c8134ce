/** Tells how many bytes of a response the system has accepted for a peer. It changes no socket. */
import { ServerResponse } from 'node:http';
import type { Duplex } from 'node:stream';
import type { Socket } from 'node:net';

/**
 * Returns the number of bytes that the operating system has accepted for the peer so far, including the finished part
 * of a large write. No public property of a socket shows that part, so this reads the socket's handle: bytes given to
 * it minus bytes that still wait in it. Without such a handle only whole writes count.
 */
export function takenBytes(socket: Socket): number {
  const handle: unknown = Reflect.get(socket, '_handle');
  const given = numberOf(handle, 'bytesWritten');
  const waiting = numberOf(handle, 'writeQueueSize');
  return given === null || waiting === null ? socket.bytesWritten - socket.writableLength : given - waiting;
}

/** Whether a response is being sent over this socket: bytes of another response would be read as part of it. */
export function isAnswering(socket: Duplex): boolean {
  const response: unknown = Reflect.get(socket, '_httpMessage');
  return response instanceof ServerResponse && response.headersSent;
}

function numberOf(holder: unknown, name: string): number | null {
  if (typeof holder !== 'object' || holder === null) return null;
  const value: unknown = Reflect.get(holder, name);
  return typeof value === 'number' ? value : null;
}
