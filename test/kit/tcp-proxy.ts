/** Starts a TCP proxy whose connections a test can cut. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

export type TcpProxy = AsyncDisposable & {
  /** The address of the proxy, which forwards to the server. */
  readonly url: string;
  /** Breaks all connections, and rejects new ones until `mend` is called. */
  cut(): void;
  mend(): void;
};

/** Starts a TCP proxy to the server at `url`. Its connections can be cut. */
export async function startTcpProxy(url: string): Promise<TcpProxy> {
  const { port } = new URL(url);
  const sockets = new Set<Socket>();
  let whole = true;
  const join = (near: Socket, far: Socket): void => {
    sockets.add(near);
    near.on('error', () => {});
    near.on('close', () => {
      sockets.delete(near);
      far.destroy();
    });
    near.pipe(far);
  };
  const server = createServer((near) => {
    if (!whole) return void near.destroy();
    const far = connect(Number(port), '127.0.0.1');
    join(near, far);
    join(far, near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const cut = (): void => {
    whole = false;
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${address.port}`,
    cut,
    mend() {
      whole = true;
    },
    async [Symbol.asyncDispose]() {
      cut();
      await new Promise((done) => server.close(done));
    },
  };
}
