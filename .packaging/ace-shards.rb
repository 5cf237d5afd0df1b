class AceShards < Formula
  desc "Gradients made small and sent through Unix pipes"
  homepage "https://arxiv.org/abs/2512.18127"
  url "@URL@/ace-@VERSION@.tar.gz"
  sha256 "@SHA256@"
  license "ISC"

  depends_on "pkgconf" => :build
  depends_on "jansson"
  depends_on "libarchive"
  depends_on "libsodium"
  # it needs Landlock, seccomp and /proc, which only Linux has
  depends_on :linux
  depends_on "lz4"
  depends_on "xxhash"

  def install
    system "make", "install", "DEPS=no", "PREFIX=#{prefix}"
    pkgshare.install ".packaging/own-test"
  end

  test do
    system pkgshare/"own-test"
  end
end
