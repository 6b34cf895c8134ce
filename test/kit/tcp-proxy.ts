/** Starts TCP proxies whose connections a test can cut, hold, or reset after a part of an answer. */
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

export type TcpProxy = AsyncDisposable & {
  /** The address of the proxy, which forwards to the server. */
  readonly url: string;
  /** Breaks all connections, and rejects new ones until `mend` is called. */
  cut(): void;
  mend(): void;
  /** Forwards nothing until `release` is called; then all of it, in its order. */
  hold(): void;
  release(): void;
};

/** Starts a TCP proxy to the server at `url`. Its connections can be cut and held. */
export async function startTcpProxy(url: string): Promise<TcpProxy> {
  const { port } = new URL(url);
  /** Each socket, with the one that gets what it sends. */
  const sockets = new Map<Socket, Socket>();
  let whole = true;
  let isHeld = false;
  const join = (near: Socket, far: Socket): void => {
    sockets.set(near, far);
    near.on('error', () => {});
    near.on('close', () => {
      sockets.delete(near);
      far.destroy();
    });
    if (!isHeld) near.pipe(far);
  };
  const server = createServer((near) => {
    if (!whole) return void near.destroy();
    const far = connect(Number(port), '127.0.0.1');
    join(near, far);
    join(far, near);
  });
  const own = await listen(server);
  const cut = (): void => {
    whole = false;
    for (const socket of sockets.keys()) socket.destroy();
  };
  return {
    url: own,
    cut,
    mend() {
      whole = true;
    },
    hold() {
      isHeld = true;
      for (const [near, far] of sockets) near.unpipe(far);
    },
    release() {
      if (!isHeld) return;
      isHeld = false;
      for (const [near, far] of sockets) near.pipe(far);
    },
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((done) => server.close(done));
    },
  };
}

export type ResettingProxy = AsyncDisposable & {
  readonly url: string;
  /** The number of bytes of the last answer that arrived here. */
  readonly received: number;
  /** From now on, passes on this many bytes of each answer and then resets both connections; Infinity: never. */
  resetAfter(bytes: number): void;
};

/** Starts a TCP proxy that resets both of its connections once it has received a given part of an answer. */
export async function startResettingProxy(url: string): Promise<ResettingProxy> {
  const port = Number(new URL(url).port);
  let most = Infinity;
  let received = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    received = 0;
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    }
    near.pipe(far);
    const reset = (): void => {
      near.resetAndDestroy();
      far.resetAndDestroy();
    };
    far.on('end', () => near.end());
    far.on('data', (chunk: Buffer) => {
      const room = most - received;
      received += chunk.length;
      if (chunk.length < room) return void near.write(chunk);
      // What was passed on before the reset may not arrive.
      near.write(chunk.subarray(0, Math.max(0, room)), reset);
    });
  });
  return {
    url: await listen(server),
    get received() {
      return received;
    },
    resetAfter: (bytes) => void (most = bytes),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

export type CuttingProxy = AsyncDisposable & {
  readonly url: string;
  /** How many connections were cut. */
  readonly cuts: number;
  /** Passes on this many more bytes in one direction, then destroys both sides of the connection; once. */
  cutAfter(way: 'up' | 'down', bytes: number): void;
};

/** Starts a TCP proxy that cuts a connection at a given byte: what comes before it arrives, and nothing after it. */
export async function startCuttingProxy(url: string): Promise<CuttingProxy> {
  const port = Number(new URL(url).port);
  const sockets = new Set<Socket>();
  const room = { up: Infinity, down: Infinity };
  let cuts = 0;
  const pass = (from: Socket, to: Socket, way: 'up' | 'down'): void => {
    sockets.add(from);
    from.on('error', () => {});
    from.on('close', () => {
      sockets.delete(from);
      to.destroy();
    });
    from.on('end', () => to.end());
    from.on('data', (chunk: Buffer) => {
      const most = room[way];
      room[way] -= chunk.length;
      if (chunk.length < most) return void to.write(chunk);
      [room.up, room.down] = [Infinity, Infinity];
      cuts++;
      // The other side reads the end after these bytes.
      to.end(chunk.subarray(0, Math.max(0, most)));
      from.destroy();
    });
  };
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    pass(near, far, 'up');
    pass(far, near, 'down');
  });
  return {
    url: await listen(server),
    get cuts() {
      return cuts;
    },
    cutAfter: (way, bytes) => void (room[way] = bytes),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((done) => server.close(done));
    },
  };
}

async function listen(server: Server): Promise<string> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  return `http://127.0.0.1:${address.port}`;
}
