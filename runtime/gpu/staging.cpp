#include "runtime/gpu/staging.hpp"

#include <algorithm>
#include <cstring>
#include <exception>

#include "ir/two_threads.hpp"

namespace kiln::gpu {
namespace {

// Large enough to hide the start-up cost of a copy, and small enough that filling one chunk overlaps with sending the
// previous one.
constexpr std::size_t chunk_bytes = std::size_t{4} << 20;

}  // namespace

staging::staging(state& of) : state_(of) {
  try {
    for (chunk& c : chunks_) {
      c.last_use = std::make_unique<raw_event>(of, event_without_timing);
      void* memory = nullptr;
      of.require(of.functions().host_allocate(&memory, chunk_bytes, 0), "allocating pinned host memory");
      c.memory = static_cast<std::byte*>(memory);
    }
  } catch (...) {
    release();
    throw;
  }
}

staging::~staging() { release(); }

void staging::release() noexcept {
  if (state_.hung()) return;
  current_device now(state_);
  for (chunk& c : chunks_) {
    if (!c.memory) continue;
    if (c.used) state_.note(state_.wait_for_event(c.last_use->get()));
    if (state_.hung()) return;
    state_.note(state_.functions().host_free(c.memory));
    c.memory = nullptr;
  }
}

void staging::wait_until_free(chunk& c) {
  if (c.used) state_.require(state_.wait_for_event(c.last_use->get()), "waiting for a copy");
  c.used = false;
}

staging::chunk& staging::next() {
  chunk& c = chunks_[turn_++ % chunks_.size()];
  wait_until_free(c);
  return c;
}

void staging::send(void* to, const void* from, std::size_t bytes, void* stream, chunk& through) {
  const driver_functions& f = state_.functions();
  std::memcpy(through.memory, from, bytes);
  through.used = true;
  int copied = f.copy_to_device(to, through.memory, bytes, stream);
  int recorded = f.event_record(through.last_use->get(), stream);
  // Without the event we cannot tell when the chunk is free.
  if (recorded) state_.note(state_.wait_for_stream(stream));
  state_.require(copied, "copying to the device");
  state_.require(recorded, "recording a copy");
}

void staging::upload(void* to, const void* from, std::size_t bytes, void* stream) {
  std::lock_guard lock(mutex_);
  std::mutex failing;
  std::exception_ptr failure;
  const std::size_t first = turn_, count = (bytes + chunk_bytes - 1) / chunk_bytes;
  on_two_threads(count, bytes, [&](std::size_t i) {
    try {
      working_device now(state_);
      const std::size_t at = i * chunk_bytes;
      chunk& c = chunks_[(first + i) % chunks_.size()];
      std::lock_guard filling(c.filling);
      wait_until_free(c);
      send(static_cast<std::byte*>(to) + at, static_cast<const std::byte*>(from) + at,
           std::min(chunk_bytes, bytes - at), stream, c);
    } catch (...) {
      std::lock_guard lock_failure(failing);
      if (!failure) failure = std::current_exception();
    }
  });
  turn_ += count;
  if (failure) std::rethrow_exception(failure);
}

void staging::download(void* to, const void* from, std::size_t bytes, void* stream) {
  working_device now(state_);
  // Wait before taking the lock, so that other copies can proceed.
  state_.require(state_.wait_for_stream(stream), "waiting for the device");
  std::lock_guard lock(mutex_);
  const driver_functions& f = state_.functions();
  auto start = [&](std::size_t at) {
    chunk& c = next();
    c.used = true;
    int copied =
        f.copy_to_host(c.memory, static_cast<const std::byte*>(from) + at, std::min(chunk_bytes, bytes - at), stream);
    int recorded = f.event_record(c.last_use->get(), stream);
    if (recorded) state_.note(state_.wait_for_stream(stream));
    state_.require(copied, "copying from the device");
    state_.require(recorded, "recording a copy");
    return &c;
  };
  // Start the next chunk while this one is copied out.
  chunk* coming = bytes ? start(0) : nullptr;
  for (std::size_t at = 0; at < bytes; at += chunk_bytes) {
    chunk* here = coming;
    if (at + chunk_bytes < bytes) coming = start(at + chunk_bytes);
    state_.require(state_.wait_for_event(here->last_use->get()), "copying from the device");
    std::memcpy(static_cast<std::byte*>(to) + at, here->memory, std::min(chunk_bytes, bytes - at));
    here->used = false;
  }
}

}  // namespace kiln::gpu
