/*
 * Holds many streams open and counts the events that arrive: reader <port> <streams> <requests> <answer> <marker>
 *   requests  a file of requests, each ended by a NUL byte; the streams use them in turn
 *   answer    the bytes, in hex, that are sent once after the first bytes of a stream; empty for none
 *   marker    the number of a byte that occurs exactly once in each event
 * Prints "READY" once every stream has received something, "<events> <bytes>" at most every 2 ms while these totals
 * grow, and "GONE" when a stream ends. The program ends when all streams have ended.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static char buffer[1 << 18];

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return at.tv_sec + at.tv_nsec / 1e9;
}

static void die(const char *what) {
  perror(what);
  exit(1);
}

static char *read_all(const char *path, long *length) {
  FILE *file = fopen(path, "rb");
  if (!file) die("requests");
  fseek(file, 0, SEEK_END);
  *length = ftell(file);
  rewind(file);
  char *text = malloc(*length + 1);
  if (fread(text, 1, *length, file) != (size_t)*length) die("requests");
  fclose(file);
  return text;
}

static int open_stream(int port, const char *request, long length) {
  struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, "127.0.0.1", &to.sin_addr);
  int stream = socket(AF_INET, SOCK_STREAM, 0);
  if (stream < 0) die("socket");
  if (connect(stream, (void *)&to, sizeof to)) die("connect");
  if (write(stream, request, length) != length) die("write");
  fcntl(stream, F_SETFL, O_NONBLOCK);
  return stream;
}

int main(int count, char **given) {
  if (count < 6) return 2;
  int port = atoi(given[1]), streams = atoi(given[2]), marker = atoi(given[5]);
  long length;
  char *requests = read_all(given[3], &length);
  unsigned char answer[256];
  int answer_length = 0;
  for (char *hex = given[4]; hex[0] && hex[1]; hex += 2) {
    unsigned byte;
    sscanf(hex, "%2x", &byte);
    answer[answer_length++] = byte;
  }
  setvbuf(stdout, NULL, _IOLBF, 256);
  int poll = epoll_create1(0), heard = 0, gone = 0;
  char *first = calloc(streams + 65536, 1);
  long events = 0, bytes = 0;
  char *request = requests;
  for (int i = 0; i < streams; i++) {
    int stream = open_stream(port, request, strlen(request));
    request += strlen(request) + 1;
    if (request >= requests + length) request = requests;
    struct epoll_event wanted = {.events = EPOLLIN, .data.fd = stream};
    epoll_ctl(poll, EPOLL_CTL_ADD, stream, &wanted);
    if (i % 64 == 63) usleep(5000);
  }
  struct epoll_event came[512];
  int news = 0;
  double told = 0;
  for (;;) {
    int n = epoll_wait(poll, came, 512, news ? 0 : 1000);
    if (n == 0 && news) {
      printf("%ld %ld\n", events, bytes);
      news = 0;
      continue;
    }
    for (int i = 0; i < n; i++) {
      int stream = came[i].data.fd;
      int size = read(stream, buffer, sizeof buffer);
      if (size < 0 && errno == EAGAIN) continue;
      if (size <= 0) {
        printf("GONE\n");
        close(stream);
        if (++gone == streams) return 0;
        continue;
      }
      if (!first[stream]) {
        first[stream] = 1;
        if (answer_length && write(stream, answer, answer_length) != answer_length) die("answer");
        if (++heard == streams) printf("READY\n");
      }
      bytes += size;
      for (char *at = buffer; (at = memchr(at, marker, buffer + size - at)); at++) events++;
      news = 1;
    }
    double at = now();
    if (news && at - told > 0.002) {
      printf("%ld %ld\n", events, bytes);
      told = at;
      news = 0;
    }
  }
}
