// The interface of the emulator for Python (ctypes): names of operations, and the execution of one workgroup. One
// thread of a process uses it at a time: the state of waves and LDS is kept between calls.
#include <algorithm>
#include <memory>
#include <unordered_map>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "operations.hpp"
#include "workgroup.hpp"

namespace emulation {

namespace {

const std::unordered_map<std::string, decltype(operation::run)>& operations() {
  static const auto all = [] {
    std::unordered_map<std::string, decltype(operation::run)> found;
    for (const auto* table : {&comparisons, &conversions, &float_operations, &half_operations, &integer_operations,
                              &lane_operations, &lds_operations, &matrix_operations, &memory_operations,
                              &scalar_control, &scalar_operations, &short_operations})
      for (const operation& o : *table) found.emplace(o.name, o.run);
    return found;
  }();
  return all;
}

// While an object lives, this processor flushes f32 denormals to zero, as the mode of the kernel demands (x86-64 only).
class denormal_mode {
 public:
  explicit denormal_mode([[maybe_unused]] bool flushes) {
#if defined(__x86_64__)
    before_ = _mm_getcsr();
    if (flushes) _mm_setcsr(before_ | 0x8040);
#endif
  }
  ~denormal_mode() {
#if defined(__x86_64__)
    _mm_setcsr(before_);
#endif
  }
  denormal_mode(const denormal_mode&) = delete;
  denormal_mode& operator=(const denormal_mode&) = delete;

 private:
  [[maybe_unused]] unsigned before_ = 0;
};

}  // namespace

extern "C" {

// What all workgroups of a launch have in common, and the state in which the device starts a wave. amd_machine.py has
// the same structure.
struct launch {
  const instruction* code;
  std::uint32_t instructions;
  std::uint32_t lanes_of_wave, threads, block_x, block_y;
  std::uint32_t packed_ids;  // the three thread numbers are in one register
  std::uint32_t flushes_denormals;
  std::uint32_t shared_bytes, scratch_bytes;  // of a workgroup, of a lane
  std::uint32_t user_registers;
  std::uint32_t user[32];
  std::uint32_t id_registers;       // bits: workgroup number x, y, z in scalar registers after the user's
  std::uint32_t ids_in_ttmp;        // RDNA 4: they are in ttmp7 and ttmp9
  std::uint64_t most_instructions;  // of all waves of a workgroup: a kernel with more does not end
};

// The function that executes the operation of this name, for instruction::run; null if it is not emulated.
const void* emulation_operation(const char* name) {
  const auto found = operations().find(name);
  return found == operations().end() ? nullptr : reinterpret_cast<const void*>(found->second);
}

// Lets Python check that both sides agree about the size of an instruction.
std::uint32_t emulation_instruction_bytes() { return sizeof(instruction); }

// Executes one workgroup: its waves in the given order, each up to its next barrier, until all have ended. `group` is
// the workgroup's number (x, y, z), `order` the numbers of its waves, `scratch` the private memory of all its lanes.
// Returns the number of instructions, or -1 with one line in `error` if the kernel does what it must not, or what is
// not emulated. `findings` gets a line for each fault that the detectors saw, up to its size; a kernel continues after
// one.
std::int64_t emulation_run(const launch* l, const std::uint32_t* group, const std::uint32_t* order,
                           std::uint8_t* scratch, char* error, std::uint32_t error_bytes, char* findings,
                           std::uint32_t findings_bytes) {
  static workgroup shared;
  static std::vector<std::unique_ptr<wave>> waves;
  std::map<std::uint64_t, std::string> found;
  shared.findings = &found;
  shared.start(l->shared_bytes);
  const std::uint32_t count = (l->threads + l->lanes_of_wave - 1) / l->lanes_of_wave;
  const denormal_mode mode(l->flushes_denormals);
  std::uint64_t executed = 0;
  while (waves.size() < count) waves.push_back(std::make_unique<wave>());
  for (std::uint32_t n = 0; n < count; ++n) {
    wave& w = *waves[n];
    std::memset(static_cast<void*>(&w), 0, sizeof w);
    w.size = static_cast<int>(l->lanes_of_wave), w.number = static_cast<int>(n), w.group = &shared;
    w.scratch_bytes = l->scratch_bytes,
    w.scratch = reinterpret_cast<std::uint64_t>(scratch) + std::uint64_t{n} * l->lanes_of_wave * l->scratch_bytes;
    // Registers that nothing has written hold a NaN.
    for (auto& r : w.vectors) r.fill(0xFFFFFFFF);
    const std::uint32_t present = std::min(l->threads - n * l->lanes_of_wave, l->lanes_of_wave);
    w.set_mask(exec, present == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << present) - 1);
    for (std::uint32_t lane = 0; lane < l->lanes_of_wave; ++lane) {
      const std::uint32_t t = n * l->lanes_of_wave + lane, x = t % l->block_x, y = t / l->block_x % l->block_y,
                          z = t / l->block_x / l->block_y;
      if (l->packed_ids) {
        w.vectors[0][lane] = x | y << 10 | z << 20;
      } else {
        w.vectors[0][lane] = x, w.vectors[1][lane] = y, w.vectors[2][lane] = z;
      }
    }
    std::copy_n(l->user, l->user_registers, w.scalars.begin());
    std::uint32_t next = l->user_registers;
    if (l->ids_in_ttmp) {
      w.scalars[108 + 9] = group[0], w.scalars[108 + 7] = group[1] | group[2] << 16, w.scalars[108 + 8] = n << 25;
    } else {
      for (std::uint32_t d = 0; d < 3; ++d)
        if (l->id_registers >> d & 1) w.scalars[next++] = group[d];
    }
  }
  const instruction* at = nullptr;
  const auto copy_text = [](char* to, std::uint32_t bytes, const std::string& text) {
    const std::size_t length = std::min<std::size_t>(text.size(), bytes - 1);
    std::memcpy(to, text.data(), length);
    to[length] = 0;
  };
  try {
    for (bool going = true; going;) {
      going = false;
      for (std::uint32_t n = 0; n < count; ++n) {
        wave& w = *waves[order[n]];
        w.at_barrier = false;
        while (!w.ended && !w.at_barrier) {
          at = &l->code[w.next++];
          if (w.next > l->instructions) throw refusal("the end of the code");
          at->run(w, *at);
          if (++executed > l->most_instructions) throw refusal("too many instructions: the kernel does not end");
        }
        going |= !w.ended;
      }
      ++shared.phase;
    }
  } catch (const refusal& e) {
    copy_text(error, error_bytes,
              std::string(e.what()) + ", at " + std::to_string(at ? at->address - l->code[0].address : 0));
    return -1;
  }
  std::string lines;
  for (const auto& [address, fault] : found)
    lines += fault + ", at " + std::to_string(address - l->code[0].address) + "\n";
  copy_text(findings, findings_bytes, lines);
  return static_cast<std::int64_t>(executed);
}

}  // extern "C"

}  // namespace emulation
