#include "our_kernel.hpp"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <time.h>

#include <cstdlib>

#include "mlir_bridge/finalize.hpp"
#include "mlir_bridge/kernel/kernel_bytecode.hpp"
#include "runtime/host_kernel.hpp"

namespace kiln::bench {

namespace {

struct release {
  void operator()(void* p) const { std::free(p); }
};
using memory = std::unique_ptr<void, release>;
memory allocate(std::size_t bytes) { return memory(std::aligned_alloc(4096, (bytes + 4096) / 4096 * 4096)); }

}  // namespace

struct our_kernel::implementation {
  native_kernel kernel;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<host_kernel> functions;
  std::vector<memory> scratch;
  std::vector<std::vector<void*>> arguments;
};

our_kernel::our_kernel(const module& fusion, const target_row& target, const kernel_configuration& configuration,
                       bool want_texts)
    : impl_(std::make_unique<implementation>()) {
  static const compiler_context context;
  trace_.want_texts = want_texts;
  portable_kernel portable = portable_kernel::parse(context, write_kernel(fusion, "kernel"));
  // CPU time of this thread, so that other processes on the machine do not count.
  auto milliseconds = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) * 1e-6;
  };
  const double start = milliseconds();
  impl_->kernel = finalize(std::move(portable), target, configuration, &trace_);
  compile_ms_ = milliseconds() - start;
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  impl_->jit = llvm::cantFail(llvm::orc::LLJITBuilder().create());
  impl_->jit->getMainJITDylib().addGenerator(llvm::cantFail(
      llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(impl_->jit->getDataLayout().getGlobalPrefix())));
  llvm::StringRef bytes(reinterpret_cast<const char*>(impl_->kernel.object.data()), impl_->kernel.object.size());
  llvm::cantFail(impl_->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(bytes, "kernel.o")));
  for (const launch& l : impl_->kernel.launches)
    impl_->functions.push_back({llvm::cantFail(impl_->jit->lookup(l.symbol)).toPtr<host_kernel::entry>()});
  for (const scratch_buffer& s : impl_->kernel.scratch)
    impl_->scratch.push_back(allocate(static_cast<std::size_t>(s.bytes)));
}

our_kernel::~our_kernel() = default;

std::size_t our_kernel::code_bytes() const { return impl_->kernel.object.size(); }

std::size_t our_kernel::launches() const {
  std::size_t n = 0;
  for (const launch& l : impl_->kernel.launches) n += l.prepare ? 0 : 1;
  return n;
}

void our_kernel::set_arguments(std::vector<const void*> inputs, std::vector<void*> outputs) {
  impl_->arguments.clear();
  for (const launch& l : impl_->kernel.launches) {
    std::vector<void*> arguments;
    for (const launch_argument& a : l.arguments)
      arguments.push_back(a.kind == buffer_kind::input    ? const_cast<void*>(inputs[a.index])
                          : a.kind == buffer_kind::output ? outputs[a.index]
                                                          : impl_->scratch[a.index].get());
    impl_->arguments.push_back(std::move(arguments));
  }
}

void our_kernel::launch_all(bool prepare) {
  for (std::size_t i = 0; i < impl_->functions.size(); ++i)
    if (impl_->kernel.launches[i].prepare == prepare)
      impl_->functions[i](impl_->arguments[i].data(), 0, impl_->kernel.launches[i].grid);
}

void our_kernel::prepare() { launch_all(true); }
void our_kernel::run() { launch_all(false); }

}  // namespace kiln::bench
