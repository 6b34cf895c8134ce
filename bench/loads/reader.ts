/** Reads many event streams without a C compiler. It is slower than `reader.c`, so it may limit the measurement. */
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';

const [port = '0', streams = '0', requests = '', answer = '', marker = '0'] = process.argv.slice(2);
const texts = readFileSync(requests, 'latin1').split('\0').slice(0, -1);
const byte = Number(marker);
const buffer = Buffer.alloc(1 << 18);
let events = 0;
let bytes = 0;
let heard = 0;
let gone = 0;
let told = -1;

function tell(): void {
  if (told === bytes) return;
  told = bytes;
  process.stdout.write(`${events} ${bytes}\n`);
}

function take(size: number): void {
  bytes += size;
  const part = buffer.subarray(0, size);
  for (let at = part.indexOf(byte); at >= 0; at = part.indexOf(byte, at + 1)) events++;
}

function open(i: number): void {
  let first = true;
  const callback = (size: number): boolean => {
    if (first && answer !== '') socket.write(Buffer.from(answer, 'hex'));
    if (first && ++heard === Number(streams)) process.stdout.write('READY\n');
    first = false;
    take(size);
    return true;
  };
  const socket = connect({ port: Number(port), host: '127.0.0.1', onread: { buffer, callback } });
  socket.on('connect', () => socket.write(texts[i % texts.length] ?? '', 'latin1'));
  socket.on('error', () => {});
  socket.on('close', () => {
    process.stdout.write('GONE\n');
    if (++gone === Number(streams)) process.exit();
  });
}

for (let i = 0; i < Number(streams); i++) {
  open(i);
  if (i % 64 === 63) await new Promise((done) => setTimeout(done, 5));
}
setInterval(tell, 2);
