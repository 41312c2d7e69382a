// The files that Clang sees: sources from disk after the pre-lexer, and the shim, which it leaves alone.
#pragma once

#include "msl/front/prelexer.h"

#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/Support/VirtualFileSystem.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace vortex::msl::front {

/// Where the shim's files seem to lie; no file on disk has such a name.
inline constexpr const char* kShimFolder = "/vortex-msl-shim";
inline constexpr const char* kPrelude = "/vortex-msl-shim/prelude.metal";
inline constexpr const char* kPrecompiled = "/vortex-msl-shim/prelude.pch";
inline constexpr const char* kDefinitions = "/vortex-msl-shim/definitions.metal";

/// Expressions that are cast by way of float, by the file's absolute path.
using Widened = std::map<std::string, std::vector<Range>>;

class SourceFiles : public llvm::vfs::ProxyFileSystem {
public:
  /// The shim alone.
  SourceFiles();
  /// `path` as it is known here.
  static std::string key(llvm::StringRef path);
  /// `text`: what stands for the file `name`, whatever lies on disk. `definitions`: macros, as NAME or NAME=VALUE. `precompiled`: the bytes of
  /// `kPrecompiled`, which outlive this; none: there is no such file.
  SourceFiles(const std::string& name, const std::string& text, const std::vector<std::string>& definitions,
              llvm::StringRef precompiled, const Widened& widened);
  llvm::ErrorOr<llvm::vfs::Status> status(const llvm::Twine& path) override;
  llvm::ErrorOr<std::unique_ptr<llvm::vfs::File>> openFileForRead(const llvm::Twine& path) override;

  struct Place {
    std::string path;
    const Rewritten* source;
    uint32_t line, column;  ///< in the rewritten text
  };
  /// The innermost call's place that lies in a source; nothing: all of it is the shim's, or `at` is null.
  std::optional<Place> placeOf(const llvm::DILocation* at) const;
  /// Null: the shim's, or never read.
  const Rewritten* find(llvm::StringRef path) const;
  std::vector<std::string> names() const;
  /// A source that was read does. Operators of vectors are the shim's, which knows no pragma, so it holds for all code.
  bool forbidsContraction() const;

private:
  std::optional<llvm::StringRef> text(const llvm::Twine& path);
  const std::vector<Range>& widenedIn(const std::string& key) const;
  std::map<std::string, llvm::StringRef> shim_;  ///< by absolute path
  std::string definitions_;
  Widened widened_;
  std::map<std::string, Rewritten> sources_;  ///< likewise
};

}  // namespace vortex::msl::front
