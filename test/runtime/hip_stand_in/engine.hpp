// The simulated device behind the stand-in's entry points. One lock protects everything.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "stand_in.hpp"

namespace kiln::stand_in {

// Status numbers that both drivers share.
inline constexpr int ok = 0, no_context = 201, invalid_handle = 400, illegal_state = 401, capture_unsupported = 900,
                     capture_invalidated = 901, update_failed = 910;
inline constexpr int invalid_value = 1, out_of_memory = 2, invalid_image = 200, not_found = 500, not_ready = 600,
                     illegal_address = 700, timed_out = 702;

struct engine;

// The parameters of a kernel are copied at launch; it runs later.
struct kernel {
  const char* name;
  void (*run)(void* const* buffers, long long begin, long long end);
  unsigned arguments;
  unsigned maps = 0;  // bit i: argument i is a tensor map
};
const kernel* find_kernel(const std::string& name);

struct stream_object;

// The work of a stream or node. Returns false if it makes the device unusable.
using work = std::function<bool(stream_object&)>;

struct graph_object;
struct node_object {
  enum class kind { kernel, copy, fill, child } what = kind::kernel;
  work run;
  std::vector<node_object*> after;
  graph_object* of = nullptr;
};
struct graph_object {
  std::vector<std::unique_ptr<node_object>> nodes;
};
// Indexed by the position of nodes in the graph from which this one was instantiated, because callers identify nodes by
// those handles.
struct exec_object {
  struct node {
    node_object::kind what;
    work run;
    std::vector<std::size_t> after;
  };
  std::vector<node> nodes;
  std::map<node_object*, std::size_t> place;
  int device = 0;
  // Launches that have not finished.
  std::shared_ptr<std::size_t> pending = std::make_shared<std::size_t>(0);
};

struct stream_object {
  explicit stream_object(int of) : device(of) {}
  int device;
  struct item {
    work run;
    // Executed even if the device is lost.
    bool releases = false;
  };
  std::deque<item> work_list;
  bool hung = false;
  std::unique_ptr<graph_object> capture;  // while it is captured
  void* last = nullptr;                   // node of the capture
  // A call was made that is not allowed during a capture.
  bool invalid = false;
};
// One recording of an event.
struct moment {
  stream_object* stream = nullptr;
  bool done = false;
  double milliseconds = 0;
};
struct event_object {
  explicit event_object(int of) : device(of) {}
  int device;
  std::shared_ptr<moment> last;
};
// What a kernel's handle points to.
struct function_object {
  const kernel* what = nullptr;
  int device = 0;
};
struct module_object {
  explicit module_object(int of) : device(of) {}
  int device;
  std::set<std::string> names;
  std::map<std::string, function_object> functions;  // those that were asked for
};
struct allocation {
  std::size_t bytes = 0;
  int device = 0;
  // Memory of a pool: only its own device reads it, also where the device's peers may read the rest.
  bool pooled = false;
};
struct pool_object {
  int device = 0;
};
struct link_object {
  std::string text;
  std::vector<char> result;
};

struct engine {
  std::recursive_mutex mutex;
  std::map<std::string, std::size_t> counts;
  std::string log_text, text;
  struct fault {
    std::string name;
    std::size_t left;
    int status;
  };
  std::vector<fault> faults;
  int device_count = 2, version = 0;
  std::map<int, int> lost_devices;      // with the status that their functions return
  std::set<std::pair<int, int>> peers;  // a device and another whose memory it may use
  static constexpr int every_device = -1, none = -1;
  // The calling thread's device; none before a CUDA context is current.
  static thread_local int current;
  std::size_t late_uses = 0, contexts = 0;
  std::map<char*, allocation> device_memory, host_memory;  // real addresses
  std::set<stream_object*> streams;
  std::set<void*> launched_streams;  // handles
  std::set<event_object*> events;
  std::set<module_object*> modules;
  std::set<pool_object*> pools;
  std::set<link_object*> links;
  std::set<graph_object*> graphs;
  std::set<exec_object*> execs;
  std::map<int, stream_object> default_streams;  // by device

  // Runs `body` as the function `name`: counts and logs the call, and fails if the test requested it. Functions that
  // release something do so even if they fail.
  template <class Body>
  int call(const char* name, Body&& body, bool releases = false) {
    std::lock_guard lock(mutex);
    inside_scope here;
    int status = enter(name);
    if (status && !releases) return status;
    int result = body();
    return status ? status : result;
  }
  int enter(const char* name);
  struct inside_scope {
    inside_scope() { ++depth; }
    ~inside_scope() { --depth; }
    static thread_local int depth;
  };

  stream_object* stream(void* handle) {
    return handle ? static_cast<stream_object*>(handle) : &default_streams.try_emplace(current, current).first->second;
  }
  bool alive(stream_object* s) const {
    return streams.contains(s) ||
           std::ranges::any_of(default_streams, [&](const auto& of_device) { return &of_device.second == s; });
  }
  // The status of a lost device; 0 for one that works.
  int lost(int device) const {
    for (int each : {every_device, device})
      if (auto found = lost_devices.find(each); found != lost_devices.end()) return found->second;
    return ok;
  }
  void step(stream_object& s);
  int drain(stream_object& s);
  void finish(moment& m);

  // Device addresses are real ones with a bias that no host address has.
  void* allocate(std::map<char*, allocation>& where, std::size_t bytes, int device, bool pooled = false);
  int release(std::map<char*, allocation>& where, char* real);
  // Returns the real address of `bytes` bytes at a device address; null if they are not all in one live allocation, or
  // if `user` may not use it. Copies and fills of a driver may use the memory of every device.
  char* real(const void* device, std::size_t bytes = 1, int user = every_device);
  bool is_pinned(const void* host, std::size_t bytes) const;
  std::size_t live() const {
    return device_memory.size() + host_memory.size() + streams.size() + events.size() + modules.size() + pools.size() +
           links.size() + graphs.size() + execs.size() + contexts;
  }
};

inline constexpr std::size_t device_bias = std::size_t{1} << 62;

engine& the_engine();

// That the driver reports.
int driver_version();

// Work for a stream, or a node of the graph that it is captured into.
int later(void* handle, work what, node_object::kind kind, bool releases = false);
int kernel_work(void* function, const unsigned* grid, const unsigned* block, void** parameters, work& result);
work copy_work(void* to, const void* from, std::size_t bytes, bool from_host, bool to_host);
work fill_work(void* to, unsigned value, std::size_t element_bytes, std::size_t count);

}  // namespace kiln::stand_in
