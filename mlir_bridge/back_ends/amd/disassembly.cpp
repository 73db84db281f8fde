#include "mlir_bridge/back_ends/amd/disassembly.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "ir/error.hpp"
#include "llvm/MC/MCAsmInfo.h"
#include "llvm/MC/MCContext.h"
#include "llvm/MC/MCDisassembler/MCDisassembler.h"
#include "llvm/MC/MCInst.h"
#include "llvm/MC/MCInstPrinter.h"
#include "llvm/MC/MCInstrAnalysis.h"
#include "llvm/MC/MCInstrInfo.h"
#include "llvm/MC/MCRegisterInfo.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/MCTargetOptions.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir_bridge/back_ends/amd/code_object_info.hpp"
#include "mlir_bridge/back_ends/amd/damaged_object.hpp"
#include "mlir_bridge/back_ends/amd/initialize.hpp"

namespace kiln::gpu {
namespace {

// LLVM's machine-code layer for one processor. Each member depends on the ones before it.
class decoder {
 public:
  explicit decoder(const std::string& processor) : triple_("amdgcn-amd-amdhsa") {
    initialize_amd();
    std::string message;
    const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple_, message);
    if (!target) throw error(error_kind::unsupported, "cannot disassemble: " + message);
    llvm::MCTargetOptions options;
    registers_.reset(target->createMCRegInfo(triple_));
    assembly_.reset(target->createMCAsmInfo(*registers_, triple_, options));
    // For an unknown processor LLVM only prints a warning here, but its disassembler then ends the process. So first
    // check the name with a subtarget without a processor.
    std::unique_ptr<llvm::MCSubtargetInfo> neutral(target->createMCSubtargetInfo(triple_, "", ""));
    if (!processor.starts_with("gfx") || !neutral->isCPUStringValid(processor))
      throw error(error_kind::unsupported, fmt::format("cannot disassemble code for processor '{}'", processor));
    subtarget_.reset(target->createMCSubtargetInfo(triple_, processor, ""));
    instructions_.reset(target->createMCInstrInfo());
    context_ = std::make_unique<llvm::MCContext>(triple_, assembly_.get(), registers_.get(), subtarget_.get());
    disassembler_.reset(target->createMCDisassembler(*subtarget_, *context_));
    printer_.reset(target->createMCInstPrinter(triple_, assembly_->getAssemblerDialect(), *assembly_, *instructions_,
                                               *registers_));
    analysis_.reset(target->createMCInstrAnalysis(instructions_.get()));
    if (!disassembler_ || !printer_ || !analysis_)
      throw error(error_kind::unsupported, "this build's LLVM cannot disassemble AMDGPU code");
  }

  // Calls visit(offset, text) for each instruction.
  template <class Visit>
  void decode(llvm::ArrayRef<std::uint8_t> code, Visit visit) const {
    for (std::uint64_t at = 0; at < code.size();) {
      llvm::MCInst instruction;
      std::uint64_t size = 0;
      std::string text;
      llvm::raw_string_ostream stream(text);
      if (disassembler_->getInstruction(instruction, size, code.slice(at), at, llvm::nulls()) ==
              llvm::MCDisassembler::Success &&
          size > 0) {
        printer_->printInst(&instruction, at, "", *subtarget_, stream);
        if (std::uint64_t goal = 0; analysis_->evaluateBranch(instruction, at, size, goal))
          stream << llvm::format("  // 0x%04llx", static_cast<unsigned long long>(goal));
      } else {
        size = std::min<std::uint64_t>(4, code.size() - at);
        std::uint32_t word = 0;
        std::memcpy(&word, code.data() + at, size);
        stream << llvm::format(".long 0x%08x", word);
      }
      visit(at, llvm::StringRef(text).trim());
      at += size;
    }
  }

 private:
  llvm::Triple triple_;
  std::unique_ptr<llvm::MCRegisterInfo> registers_;
  std::unique_ptr<llvm::MCAsmInfo> assembly_;
  std::unique_ptr<llvm::MCSubtargetInfo> subtarget_;
  std::unique_ptr<llvm::MCInstrInfo> instructions_;
  std::unique_ptr<llvm::MCContext> context_;
  std::unique_ptr<llvm::MCDisassembler> disassembler_;
  std::unique_ptr<llvm::MCInstPrinter> printer_;
  std::unique_ptr<llvm::MCInstrAnalysis> analysis_;
};

llvm::ArrayRef<std::uint8_t> code_of(const llvm::object::ELF64LEFile& file, std::string_view symbol) {
  auto sections = value_or_throw(file.sections());
  for (const auto& table : sections) {
    if (table.sh_type != llvm::ELF::SHT_SYMTAB && table.sh_type != llvm::ELF::SHT_DYNSYM) continue;
    llvm::StringRef names = value_or_throw(file.getStringTableForSymtab(table, sections));
    for (const auto& s : value_or_throw(file.symbols(&table))) {
      if (s.getType() != llvm::ELF::STT_FUNC || s.st_shndx == llvm::ELF::SHN_UNDEF) continue;
      if (std::string_view(value_or_throw(s.getName(names))) != symbol) continue;
      const auto* section = value_or_throw(file.getSection(s.st_shndx));
      llvm::ArrayRef<std::uint8_t> contents = value_or_throw(file.getSectionContents(*section));
      // Sections of a relocatable object have address 0.
      std::uint64_t begin = s.st_value - section->sh_addr;
      if (begin > contents.size() || s.st_size > contents.size() - begin)
        throw_corrupted(fmt::format("symbol '{}' lies outside its section", symbol));
      return contents.slice(begin, s.st_size);
    }
  }
  throw error(error_kind::usage, fmt::format("the code object has no kernel '{}'", symbol));
}

template <class Visit>
void decode_kernel(std::span<const std::byte> object, std::string_view symbol, Visit visit) {
  // Use the processor's name from the metadata. LLVM's own derivation from the ELF flags is undefined behaviour for an
  // unknown processor.
  const decoder machine(read_processor(object));
  machine.decode(code_of(value_or_throw(llvm::object::ELF64LEFile::create(
                             {reinterpret_cast<const char*>(object.data()), object.size()})),
                         symbol),
                 visit);
}

// Groups of mnemonics, by prefix. A dual-issue line can hold one mnemonic in each half.
struct matrix_family {
  std::string_view prefix;
  std::int64_t matrix_instruction_counts::* member;
};
constexpr matrix_family families[] = {
    {"v_mfma", &matrix_instruction_counts::mfma}, {"v_smfmac", &matrix_instruction_counts::smfmac},
    {"v_wmma", &matrix_instruction_counts::wmma}, {"v_swmmac", &matrix_instruction_counts::swmmac},
    {"v_dot2", &matrix_instruction_counts::dot2}, {"v_dual_dot2", &matrix_instruction_counts::dot2},
    {"v_dot4", &matrix_instruction_counts::dot4}, {"v_dot8", &matrix_instruction_counts::dot8},
};

}  // namespace

std::vector<std::string> disassemble(std::span<const std::byte> object, std::string_view symbol) {
  std::vector<std::string> lines;
  decode_kernel(object, symbol, [&](std::uint64_t at, llvm::StringRef text) {
    std::string line = fmt::format("0x{:04x}: {}", at, std::string_view(text));
    for (char& c : line)
      if (c == '\t') c = ' ';
    lines.push_back(std::move(line));
  });
  return lines;
}

matrix_instruction_counts count_matrix_instructions(std::span<const std::byte> object, std::string_view symbol) {
  matrix_instruction_counts counts;
  decode_kernel(object, symbol, [&](std::uint64_t, llvm::StringRef text) {
    auto [first, second] = text.split("::");
    for (llvm::StringRef half : {first.trim(), second.trim()})
      for (const matrix_family& f : families)
        if (half.starts_with(f.prefix)) ++(counts.*f.member);
  });
  return counts;
}

}  // namespace kiln::gpu
