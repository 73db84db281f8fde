#include "harness.hpp"

#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/program.hpp"
#include "mlir_bridge/targets/target_table.hpp"
#include "runtime/host_features.hpp"

namespace kiln::test {

target_row v3_row() { return *find_row("x86-64-v3"); }
target_row v4_row() { return *find_row("x86-64-v4"); }

std::vector<target_row> rows_here() {
  std::vector<target_row> rows;
  for (const cpu_row& row : cpu_rows()) {
    if (row.architecture != this_architecture || row.name == "x86-64-v2") continue;
    if (runs_on_host(row)) rows.push_back(*find_row(row.name));
    else std::printf("this machine cannot run %s\n", std::string(row.name).c_str());
  }
  return rows;
}

struct loaded_kernel::implementation {
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

loaded_kernel::loaded_kernel(native_kernel kernel)
    : kernel_(std::move(kernel)), impl_(std::make_unique<implementation>()) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    return true;
  }();
  (void)initialized;
  impl_->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  impl_->jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(impl_->jit->getDataLayout().getGlobalPrefix())));
  llvm::StringRef bytes(reinterpret_cast<const char*>(kernel_.object.data()), kernel_.object.size());
  llvm::cantFail(impl_->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes, "kernel.o")));
  for (const launch& l : kernel_.launches)
    functions_.push_back({llvm::cantFail(impl_->jit->lookup(l.symbol)).toPtr<host_kernel::entry>()});
}

loaded_kernel::~loaded_kernel() = default;

namespace {

// Memory between two inaccessible pages; the contents are adjacent to one of them.
class guarded {
 public:
  guarded(std::size_t bytes, guard side) : bytes_(bytes) {
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t room = (bytes + page - 1) / page * page;
    total_ = room + 2 * page;
    base_ = static_cast<std::byte*>(mmap(nullptr, total_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    EXPECT_NE(base_, MAP_FAILED);
    if (room != 0) {
      EXPECT_EQ(mprotect(base_ + page, room, PROT_READ | PROT_WRITE), 0);
    }
    data_ = side == guard::after ? base_ + page + room - bytes : base_ + page;
    std::memset(data_, 0xff, bytes);
  }
  ~guarded() { munmap(base_, total_); }
  guarded(const guarded&) = delete;
  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }

 private:
  std::size_t bytes_, total_ = 0;
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
};

}  // namespace

std::vector<literal> run(const loaded_kernel& kernel, std::span<const literal> inputs, std::span<const shape> outputs,
                         std::int64_t splits, guard side) {
  std::vector<std::unique_ptr<guarded>> in, out, scratch;
  for (const literal& l : inputs) {
    in.push_back(std::make_unique<guarded>(l.bytes().size(), side));
    std::memcpy(in.back()->data(), l.bytes().data(), l.bytes().size());
  }
  for (const shape& s : outputs) out.push_back(std::make_unique<guarded>(s.bytes(), side));
  for (const scratch_buffer& s : kernel.kernel().scratch)
    scratch.push_back(std::make_unique<guarded>(static_cast<std::size_t>(s.bytes), side));
  for (std::size_t i = 0; i < kernel.kernel().launches.size(); ++i) {
    const launch& l = kernel.kernel().launches[i];
    std::vector<void*> arguments;
    for (const launch_argument& a : l.arguments)
      arguments.push_back((a.kind == buffer_kind::input    ? in
                           : a.kind == buffer_kind::output ? out
                                                           : scratch)[a.index]
                              ->data());
    const std::int64_t parts = std::min(splits, l.grid);
    for (std::int64_t part = parts; part-- > 0;)
      kernel.function(i)(arguments.data(), l.grid * part / parts, l.grid * (part + 1) / parts);
  }
  std::vector<literal> results;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    results.emplace_back(outputs[i], std::vector<std::byte>(out[i]->data(), out[i]->data() + out[i]->size()));
  return results;
}

literal random_literal(const shape& type, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<double> numbers(static_cast<std::size_t>(type.element_count()));
  if (is_float(type.type)) {
    std::uniform_real_distribution<double> distribution(-1, 1);
    for (double& number : numbers) number = distribution(engine);
  } else {
    std::uniform_int_distribution<int> distribution(is_unsigned_integer(type.type) ? 0 : -128,
                                                    is_unsigned_integer(type.type) ? 255 : 127);
    for (double& number : numbers) number = distribution(engine);
  }
  return literal::from_doubles(type, numbers);
}

void expect_matches(const module& fusion, double tolerance, const kernel_configuration& configuration) {
  std::vector<literal> inputs;
  for (value parameter : fusion.parameters())
    inputs.push_back(random_literal(parameter.type(), static_cast<unsigned>(17 + inputs.size())));
  std::vector<shape> outputs;
  for (value v : fusion.outputs()) outputs.push_back(v.type());
  const std::vector<literal> expected = evaluate(fusion, inputs);
  for (const target_row& row : rows_here()) {
    SCOPED_TRACE(row.name + "\n" + fusion.str());
    loaded_kernel kernel(compile_fusion(fusion, row, configuration));
    for (std::int64_t splits : {1, 3, 64}) {
      const std::vector<literal> results =
          run(kernel, inputs, outputs, splits, splits == 3 ? guard::before : guard::after);
      for (std::size_t i = 0; i < results.size(); ++i) {
        double error = 0, norm = 0;
        std::int64_t wrong = -1;
        for (std::int64_t j = 0; j < outputs[i].element_count(); ++j) {
          const double got = results[i].at(j), wanted = expected[i].at(j), difference = got - wanted;
          if (!std::isfinite(got) && wrong < 0) wrong = j;
          error += difference * difference;
          norm += wanted * wanted;
        }
        ASSERT_EQ(wrong, -1) << "output " << i << " element " << wrong << " is not finite, splits " << splits;
        ASSERT_LE(std::sqrt(error), tolerance * std::sqrt(norm) + 1e-30) << "output " << i << ", splits " << splits;
      }
    }
  }
}

}  // namespace kiln::test
