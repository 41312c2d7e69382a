#include "python/entries.h"

#include "python/arrays.h"
#include "python/entry_capsule.h"

namespace vortex::python {
namespace {

class Entries {
public:
  Entries(std::optional<KernelCache> cache, std::string key, nb::handle open, nb::handle warn)
      : cache_(std::move(cache)), key_(std::move(key)), open_(keep(open)), warn_(keep(warn)) {}

  Result<std::vector<uint8_t>> make(const std::string& entry) {
    const Unheard unheard;  // the compiler may be at work when Python ends
    const std::lock_guard lock(mutex_);
    const std::string key = key_ + entry;
    if (cache_)
      if (auto kept = cache_->get(key))
        return *std::move(kept);
    if (!source_)
      if (Result<void> opened = open(); !opened)
        return opened.takeError();
    Result<std::vector<uint8_t>> made = source_(entry);
    if (made && isKept_)
      if (Result<void> stored = cache_->put(key, *made); !stored)
        warn(stored.error().message);
    return made;
  }

private:
  Result<void> open() {
    Result<void> done;
    locked([&] {
      try {
        const auto opened = nb::cast<nb::tuple>((*open_)());
        source_ = entriesOf(opened[0]);
        isKept_ = cache_ && nb::cast<bool>(opened[1]);
      } catch (nb::python_error& error) {
        if (error.matches(PyExc_KeyboardInterrupt))
          PyErr_SetInterrupt();  // of the caller, who hears of it when the launch has failed
        done = Error{error.what()};
      } catch (const std::exception& error) {
        done = Error{error.what()};
      }
    });
    return done;
  }

  void warn(const std::string& message) {
    locked([&] {
      try {
        (*warn_)(message.c_str());
      } catch (nb::python_error& error) {  // a warning that is an error cannot stop what has been made
        error.discard_as_unraisable("an entry point that is not kept");
      }
    });
  }

  std::mutex mutex_;
  std::optional<KernelCache> cache_;
  std::string key_;
  std::shared_ptr<nb::object> open_, warn_;
  EntrySource source_;
  bool isKept_ = false;
};

}  // namespace

EntrySource keptEntries(std::optional<KernelCache> cache, std::string key, nb::handle open, nb::handle warn) {
  auto entries = std::make_shared<Entries>(std::move(cache), std::move(key), open, warn);
  return [entries](const std::string& entry) { return entries->make(entry); };
}

}  // namespace vortex::python
